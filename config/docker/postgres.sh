#!/bin/sh
# The server, once no password could be guessed. Not in roles.sh: what fails there is not run again at the next start.
set -eu

refuse_guessable() { # refuse_guessable NAME PASSWORD
    case "$2" in
        *change-me*) ;;
        ????????????????*) return ;;
    esac
    echo "$1 holds a password that could be guessed; make one with: openssl rand -hex 24" >&2
    exit 1
}

password() { # password URL
    credentials=${1#*://}
    credentials=${credentials%%@*}
    case "$credentials" in
        *:*) echo "${credentials#*:}" ;;
    esac
}

refuse_guessable POSTGRES_PASSWORD "$POSTGRES_PASSWORD"
refuse_guessable DATABASE_OWNER_URL "$(password "$DATABASE_OWNER_URL")"
refuse_guessable DATABASE_URL "$(password "$DATABASE_URL")"
exec docker-entrypoint.sh postgres
