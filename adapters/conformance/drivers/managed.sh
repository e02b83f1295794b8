# Runs a command in a mount namespace of its own, where /etc has an administrator's settings of a host.
# $1 is their file, and $2 its path below /etc. Nothing outside the namespace changes.
set -eu
settings=$1
place=${2#/etc/}
shift 2
over=$(mktemp -d)
mount -t tmpfs none "$over"
mkdir "$over/upper" "$over/work"
mkdir -p "$over/upper/$(dirname "$place")"
cp "$settings" "$over/upper/$place"
chmod 644 "$over/upper/$place"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$over/upper,workdir=$over/work" /etc
exec "$@"
