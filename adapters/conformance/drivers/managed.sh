# Runs a command in a mount namespace of its own, where /etc has an administrator's settings of Claude Code.
# $1 is that file. Nothing outside the namespace changes.
set -eu
settings=$1
shift
over=$(mktemp -d)
mount -t tmpfs none "$over"
mkdir "$over/upper" "$over/work"
mkdir "$over/upper/claude-code"
cp "$settings" "$over/upper/claude-code/managed-settings.json"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$over/upper,workdir=$over/work" /etc
exec "$@"
