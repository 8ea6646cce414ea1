#!/bin/sh
# Turns the raw disk of a stopped virtual machine into the parts of an image: a compressed QCOW2 disk,
# and a Dockerfile that puts the disk where KubeVirt looks for it (a containerDisk).
#
# The script stops at the first error, and leaves nothing behind that looks like an image: the next
# container of the Job builds whatever it finds.
set -eu

usage() {
    cat <<'EOF'
Usage: exporter.sh [OPTION]...

  -d, --img-dir DIR     the folder with the disk             (/data)
  -n, --img-name NAME   the name of the disk, a raw image    (disk.img)
  -o, --out-dir DIR     the folder that the image is built from; made if missing   (/img-tmp)

Writes vm-snapshot.qcow2 and Dockerfile. Exit status: 0 when both are whole, else 1.
EOF
}

fail() {
    echo "exporter: $*" >&2
    exit 1
}

img_dir=/data
img_name=disk.img
out_dir=/img-tmp
while [ $# -gt 0 ]; do
    case $1 in
        -d | --img-dir | -n | --img-name | -o | --out-dir)
            [ $# -ge 2 ] || { usage >&2; fail "$1 needs a value"; }
            case $1 in
                -d | --img-dir) img_dir=$2 ;;
                -n | --img-name) img_name=$2 ;;
                *) out_dir=$2 ;;
            esac
            shift 2
            ;;
        *)
            usage >&2
            fail "unknown argument $1"
            ;;
    esac
done

disk=$img_dir/$img_name
image=$out_dir/vm-snapshot.qcow2
dockerfile=$out_dir/Dockerfile

mkdir -p "$out_dir" || fail "$out_dir cannot be created"
# The container may run again in the same folder.
rm -f "$image" "$image.part" "$dockerfile" "$dockerfile.part" || fail "$out_dir cannot be cleared"
trap 'rm -f "$image.part" "$dockerfile.part"' EXIT

[ -e "$disk" ] || fail "$disk does not exist: is it the volume of a virtual machine, in filesystem mode?"
[ -f "$disk" ] || fail "$disk is not a file: volumes in block mode are not supported"
[ -s "$disk" ] || fail "$disk is empty"

echo "exporter: converting $disk"
qemu-img convert -c -f raw -O qcow2 "$disk" "$image.part" || fail "$disk could not be converted"
qemu-img check -q "$image.part" || fail "the converted disk is damaged"
# If the disk changed during the copy, the snapshot would be inconsistent.
qemu-img compare -q -f raw -F qcow2 "$disk" "$image.part" || fail "the converted disk is not equal to $disk"

# The next container, and QEMU in KubeVirt, run as other users.
chmod 0644 "$image.part" || fail "$image.part cannot be made readable"
printf 'FROM scratch\nADD vm-snapshot.qcow2 /disk/\n' >"$dockerfile.part" ||
    fail "$dockerfile could not be written"
mv "$image.part" "$image" || fail "$image could not be put in place"
mv "$dockerfile.part" "$dockerfile" || fail "$dockerfile could not be put in place"
echo "exporter: $image is ready"
