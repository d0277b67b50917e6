# A shell that never forks: its own functions, loops, expansions, and errors that jump out to the command before. No
# signal is caught: to callgrind the entry of a handler is no call.
sum() { if [ $1 = 0 ]; then r=0; else sum $(($1 - 1)); r=$((r + $1)); fi; }
down() { [ $1 = 0 ] || down $(($1 - 1)); }
down 60
i=0; s=
while [ $i -lt 40 ]; do
  case $((i % 5)) in 0) i=$((i + 2)); continue ;; [13]) s=$s.$i ;; *) s=$i ;; esac
  i=$((i + 1))
done
echo "$s ${s%.*} ${s##*.} ${#s} ${nothing:-default}"
for a in 1 2 3; do command eval 'for in' 2>/dev/null; command . /nonexistent 2>/dev/null; command readonly =x 2>/dev/null; done
echo "errors $?"
many() { for x; do [ "$x" = stop ] && return 3; echo "$x"; done; }
many a b stop c; echo $?
while getopts ab: o -a -b val; do echo "$o $OPTARG"; done
read a b <<EOF
one two three
EOF
echo "$b $a" /etc/passw[d]
trap '' USR1; kill -USR1 $$
trap 'echo bye' EXIT
sum 60; echo "$r"
