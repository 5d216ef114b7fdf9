# A slow network: the device's event comes long before the mount is in mountinfo.
# shellcheck shell=dash
conf <<'CONF'
[nfsrahead]
nfs = 1000
nfs4 = 2000
wait = 5
[nfsrahead "/mnt/p"]
nfs = 3000
nfs4 = 4000
CONF

for ms in 0 20 100; do
    # At 100 ms the walk through four levels would take most of a run's time.
    deep=/srv/d1/d2/d3/a
    [ $ms != 100 ] || deep=/srv/a
    delay $ms
    pids=
    for top in /mnt/t /mnt/p; do
        nfs vers=3,nosharecache /srv/a $top/v3 &
        pids="$pids $!"
        nfs vers=4.2,nosharecache $deep $top/v4 &
        pids="$pids $!"
    done
    # shellcheck disable=SC2086 # a list
    wait $pids
    settle
    delay 0
    is "$ms ms, v3 by type" "$(value /mnt/t/v3)" 1000
    is "$ms ms, v4.2 by type" "$(value /mnt/t/v4)" 2000
    is "$ms ms, v3 by mount point" "$(value /mnt/p/v3)" 3000
    is "$ms ms, v4.2 by mount point" "$(value /mnt/p/v4)" 4000
    unmount_all
done

# Without this the rest could pass on a network that was never slow.
delay 100
at_most "ms left to a mount at 100 ms, of 400 that two round trips need" $((400 - $(took_ms nfs vers=4.2 /srv/a))) 0
