# Many mounts at once, more than udev has workers.
# shellcheck shell=dash

is "50 mounts of v4.2 at once, set" "$(at_once 50 vers=4.2,nosharecache /srv/a; settle; count_set 2000)" 50
unmount_all
is "30 mounts of v3 at once, set" "$(at_once 30 vers=3,nosharecache /srv/a; settle; count_set 1000)" 30
unmount_all
is "10 mounts of a four-level export at once, set" \
    "$(at_once 10 vers=4.2,nosharecache /srv/d1/d2/d3/a; settle; count_set 2000)" 10
