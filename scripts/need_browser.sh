#!/usr/bin/env bash
# The tests of the pages run in a real browser. Installs Debian's where that is possible, says what to do where not.
set -u
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
  echo "installing chromium for the tests of the pages (once)"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1 && exit 0
fi
echo "The tests of the pages need a browser: install chromium (Debian, Ubuntu: sudo apt-get install chromium)," >&2
echo "or put chromium, chromium-browser or google-chrome on the PATH." >&2
exit 1
