#!/usr/bin/env bash
# Runs once, when the database's volume is made: the owner's and the application's role, and the database.
# Names and passwords are those of DATABASE_OWNER_URL and DATABASE_URL; they pass as psql variables, quoted there.
set -euo pipefail

part() { # part URL user|password|database
    local rest=${1#*://} credentials
    credentials=${rest%%@*}
    case $2 in
        user) echo "${credentials%%:*}" ;;
        password) echo "${credentials#*:}" ;;
        database) local path=${rest#*/} && echo "${path%%\?*}" ;;
    esac
}

psql -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" \
    -v owner="$(part "$DATABASE_OWNER_URL" user)" -v owner_password="$(part "$DATABASE_OWNER_URL" password)" \
    -v app="$(part "$DATABASE_URL" user)" -v app_password="$(part "$DATABASE_URL" password)" \
    -v database="$(part "$DATABASE_OWNER_URL" database)" <<'SQL'
CREATE ROLE :"owner" LOGIN PASSWORD :'owner_password';
CREATE ROLE :"app" LOGIN PASSWORD :'app_password';
CREATE DATABASE :"database" OWNER :"owner";
SQL
