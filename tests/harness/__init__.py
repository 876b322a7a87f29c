"""The tests' outside: real servers, real processes, a real browser.

`session` holds the servers that one test session shares, `services` the processes that a test starts and
kills, `warm_python` how they start quickly, `chromium` the browser, `waiting` how a test waits without sleeping.
"""
