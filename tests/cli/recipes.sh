#!/usr/bin/env bash
# Every recipe of conf/ passes `sodet check`.
exec "$SODET_SOURCE/scripts/check_ini" "$SODET_BIN"
