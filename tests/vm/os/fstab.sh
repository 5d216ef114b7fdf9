# 20 mounts from fstab at boot (see boots): when the last was there, when udev had nothing left to do, what systemd says.
# shellcheck shell=dash
systemctl is-system-running --wait >/dev/null
settle
idle=$(now_ms)
mounted=$(systemctl show --value -P ActiveEnterTimestampMonotonic remote-fs.target)
wanted=$(cat /etc/wanted)
is "mounts" "$(nfs_lines | wc -l)" 20
is "devices with $wanted" "$(cat /sys/class/bdi/0:*/read_ahead_kb | grep -cx "$wanted")" 20
note "times: $((mounted / 1000)) ms  $idle ms  $(systemd-analyze time | sed -n '1s/.* = //p')"
note "slowest units: $(systemd-analyze blame --no-pager | awk 'NR <= 3' | tr -s ' \n' ' ')"
unmount_all
