"""The commands for scripts and pipes. Each is a module with `main(arguments)`; none needs Textual."""
