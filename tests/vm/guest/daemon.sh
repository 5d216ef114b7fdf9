# nfstuned as its unit, where the guest has systemd. Sourced by dash.
# shellcheck shell=dash

# daemon_start <TEXT: with this nfs.conf; returns when the unit says it is ready
daemon_start() {
    conf
    systemctl daemon-reload
    systemctl start nfstuned
}
# daemon_reload <TEXT
daemon_reload() {
    conf
    systemctl reload nfstuned
}
daemon_stop() { systemctl stop nfstuned 2>/dev/null; }
# daemon_kill: as the kernel would when memory is out; returns when the unit is down
daemon_kill() {
    systemctl kill --signal=KILL nfstuned
    wait_for 20 daemon_down
}
daemon_down() { ! systemctl is-active --quiet nfstuned; }
daemon_log() { journalctl --unit=nfstuned --output=cat --no-pager; }

# has_bdi_limits: /mnt/x is mounted, and its device has limits of its own (Linux 6.2)
has_bdi_limits() { [ -e "/sys/class/bdi/$(dev_of /mnt/x)/strict_limit" ]; }

# knobs MOUNT_POINT: its dirty limits: most and least (millionths of the machine's threshold) and whether they are strict
knobs() {
    local dir
    dir=/sys/class/bdi/$(dev_of "$1")
    cat "$dir/max_ratio_fine" "$dir/min_ratio_fine" "$dir/strict_limit" | tr '\n' ' '
}
# vm_knobs: the machine's
vm_knobs() {
    (cd /proc/sys/vm && cat dirty_background_ratio dirty_background_bytes dirty_ratio dirty_bytes) | tr '\n' ' '
}
