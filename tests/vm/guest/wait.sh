# wait = 0: a policy by path never holds udev, and the type's value is what a late mount gets.
# shellcheck shell=dash
configured() { printf '[nfsrahead]\nnfs4 = 2000\nwait = %s\n[nfsrahead "/mnt/x"]\nnfs4 = 4000\n' "$1" | conf; }

# held_ms: how long udev is busy with a superblock that has no mount
held_ms() {
    hold - 60
    settle_ms
    dev_value "$(cat /run/held)" >/run/value
    kill "$holder"
    wait_for 10 no_nfs
}
rule none
thrice held_ms >/run/without
rule ours
configured 0
thrice held_ms >/run/with
costs "wait = 0: udev busy" 300 /run/without /run/with
is "wait = 0: the type's value" "$(cat /run/value)" 2000
configured 2
held_ms >/run/with
costs "wait = 2: udev busy" 2500 /run/without /run/with
is "wait = 2: the type's value in the end" "$(cat /run/value)" 2000
configured 0
nfs vers=4.2 /srv/a /mnt/x
case $(value /mnt/x) in
2000 | 4000) ok "wait = 0: a mount gets one of its values" ;;
*) not_ok "wait = 0: a mount has $(value /mnt/x)" ;;
esac
