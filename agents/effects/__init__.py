"""Effects: authorises them, performs them at most once per key, reads them back, settles and undoes them."""
