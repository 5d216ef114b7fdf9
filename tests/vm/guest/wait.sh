# wait = 0: a policy by path never holds udev, and the type's value is what a late mount gets.
# shellcheck shell=dash
configured() { printf '[nfsrahead]\nnfs4 = 2000\nwait = %s\n[nfsrahead "/mnt/x"]\nnfs4 = 4000\n' "$1" | conf; }
detached() { fsmount 127.0.0.1:/srv/a vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1,nosharecache - "$1" 0; }

# held_ms: how long udev is busy with a superblock that has no mount
held_ms() {
    detached 4 &
    wait_for 20 newest_volume >/dev/null
    settle_ms
    dev_value "$(newest_volume)" >/run/value
    wait $!
}
rule none
without=$(held_ms)
rule ours
configured 0
with=$(held_ms)
at_most "wait = 0: ms that udev is busy, more than without a rule" $((with - without)) 300
is "wait = 0: the type's value" "$(cat /run/value)" 2000
configured 2
with=$(held_ms)
is "wait = 2: the type's value in the end" "$(cat /run/value)" 2000
at_most "wait = 2: ms that udev is busy, more than without a rule" $((with - without)) 2500
configured 0
nfs vers=4.2 /srv/a /mnt/x
case $(value /mnt/x) in
2000 | 4000) ok "wait = 0: a mount gets one of its values" ;;
*) not_ok "wait = 0: a mount has $(value /mnt/x)" ;;
esac
