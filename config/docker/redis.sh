#!/bin/sh
# The server with the password of REDIS_URL, which passes by its standard input: a command line is there to be read.
# Without one that cannot be guessed it does not start: whoever reaches it could stop the workers.
set -eu
case "$REDIS_URL" in
    redis://*:?*@*) ;;
    *) echo "REDIS_URL has to carry a password: redis://:PASSWORD@redis:6379/0" >&2 && exit 1 ;;
esac
credentials=${REDIS_URL#redis://}
credentials=${credentials%%@*}
password=${credentials#*:}
case "$password" in
    *change-me*) guessable=yes ;;
    ????????????????*) guessable= ;;
    *) guessable=yes ;;
esac
if [ "$guessable" ]; then
    echo "REDIS_URL holds a password that could be guessed; make one with: openssl rand -hex 24" >&2
    exit 1
fi
exec docker-entrypoint.sh redis-server - <<CONFIG
save ""
appendonly no
requirepass "$password"
CONFIG
