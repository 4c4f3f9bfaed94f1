#!/usr/bin/env bash
# An image of Debian's packages, for machines that reach a mirror of Debian and no registry of images:
#
#   from-debian.sh IMAGE PACKAGE...
#
#   deploy/images/from-debian.sh tidegate/base:bookworm python3 python3-venv python-is-python3
#   ENTRYPOINT=/usr/bin/prometheus deploy/images/from-debian.sh tidegate/prometheus:bookworm prometheus
#
# Needs root, debootstrap and docker. MIRROR is Debian's usual one unless it is set, SUITE is bookworm. The certificates that
# this machine trusts are trusted in the image, too. ENTRYPOINT is the program that a container of it runs.
set -euo pipefail
image=$1 suite=${SUITE:-bookworm} mirror=${MIRROR:-http://deb.debian.org/debian}
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
packages=$(IFS=,; echo "$*,ca-certificates")

debootstrap --variant=minbase --include="$packages" "$suite" "$folder" "$mirror" >&2
cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"

leave_out=(./var/cache ./var/lib/apt/lists ./var/log ./usr/share/doc ./usr/share/man ./usr/share/locale ./proc ./sys ./dev)
tar -C "$folder" "${leave_out[@]/#/--exclude=}" -c . \
  | docker import ${ENTRYPOINT:+--change "ENTRYPOINT [\"$ENTRYPOINT\"]"} - "$image"
