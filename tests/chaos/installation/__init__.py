"""Runs the installation under test: servers, disks, proxies and processes."""
