# What the tests of the whole system share, on top of the other tests' lib.sh: it is a server too, and has systemd.
# Sourced by dash.
# shellcheck shell=dash
. /vm/lib.sh
. /vm/daemon.sh

unmount_all() {
    umount -a -t nfs,nfs4 2>/dev/null
    wait_for 10 no_nfs
}
reset() {
    daemon_stop
    unmount_all || { umount -l -a -t nfs,nfs4; return 1; }
    rm -f /etc/nfs.conf.d/*
}
