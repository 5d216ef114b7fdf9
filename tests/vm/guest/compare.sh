# The same mounts without a rule, with Debian's helpers, and with ours, in one boot: for how long udev is busy and when
# the last value is set, in milliseconds from the end of the last mount command. The emulator is slow: compare, do not quote.
# shellcheck shell=dash
printf '[nfsrahead]\nnfs = 2000\nnfs4 = 2000\n' | conf
deep=/srv/d1/d2/d3/a

# measure N VERSION EXPORT: prints "set settled"; set is "never" where udev came to rest and not all have the value
measure() {
    local from set=never resting
    at_once "$1" "vers=$2,nosharecache" "$3"
    from=$(now_ms)
    { settle && : >/run/rested; } &
    resting=
    while [ -z "$resting" ]; do
        # The last look comes after udev has come to rest.
        [ ! -e /run/rested ] || resting=yes
        [ "$(count_set 2000)" != "$1" ] || { set=$(($(now_ms) - from)); break; }
        usleep 20000
    done
    wait $!
    echo "$set $(($(now_ms) - from))"
    rm /run/rested
    delay 0
    unmount_all
    settle
}

# one_mount DELAY TIMES FILE: medians over TIMES mounts of a four-level export; FILE gets the times that udev was busy
one_mount() {
    for _ in $(seq "$2"); do delay "$1"; measure 1 4.2 $deep; done >/run/times
    cut -d' ' -f2 /run/times >"$3"
    echo "$(cut -d' ' -f1 /run/times | median) $(median <"$3")"
}

row() { note "$(printf '%-26s %15s %15s %15s %15s' "$@")"; }
note "set / settled in ms        one mount    one at 20 ms   50 v3 at once 10 four-level"
for who in none debian peer ours; do
    case $who in
    none) label="no rule" ;;
    ours) label="ours" ;;
    *) label="nfs-utils $(cat /opt/$who/version)" ;;
    esac
    if [ $who = peer ] && [ ! -e /opt/peer/version ]; then
        skip "the newest nfs-utils could not be fetched"
        continue
    fi
    rule $who
    times=1
    case $who in none | ours) times=3 ;; esac
    near=$(one_mount 0 $times /run/near.$who)
    far=$(one_mount 20 $times /run/far.$who)
    fifty=$(measure 50 3 /srv/a)
    ten=$(measure 10 4.2 $deep)
    row "$label" "$near" "$far" "$fifty" "$ten"
done

costs "udev busy after one mount" 300 /run/near.none /run/near.ours
costs "udev busy after one mount at 20 ms" 300 /run/far.none /run/far.ours
# What is left in the variables is ours.
for result in "one mount:$near" "one mount at 20 ms:$far" "50 at once:$fifty" "10 four-level mounts:$ten"; do
    case ${result#*:} in
    never*) not_ok "${result%:*}: not all set" ;;
    *) ok "${result%:*}: all set" ;;
    esac
done
