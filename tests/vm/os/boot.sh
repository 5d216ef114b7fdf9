# The system is up: a server, udev and nfs-utils that work, and no unit that failed for our parts.
# shellcheck shell=dash
is "PID 1" "$(cat /proc/1/comm)" systemd
is "the system's state" "$(systemctl is-system-running)" running
[ "$(systemctl is-system-running)" = running ] || systemctl --failed --no-legend --plain | while read -r unit; do note "failed: $unit"; done
mkdir -p /mnt/x
nfs vers=4.2 /srv/a
is "a mount has a device" "$(dev_value "$(dev_of /mnt/x)")" 128
