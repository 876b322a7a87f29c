"""A gate's page, put together: what is asked, what each choice does, what is typed so far."""
