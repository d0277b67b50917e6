# What a shell does that a tracer could break: forks, pipes, signals, functions, errors that jump out, exec.
fact() { if [ "$1" -le 1 ]; then echo 1; else echo $(($1 * $(fact $(($1 - 1))))); fi; }
echo "factorial $(fact 8)"
ackermann() {
  if [ $1 -eq 0 ]; then r=$(($2 + 1)); elif [ $2 -eq 0 ]; then ackermann $(($1 - 1)) 1
  else ackermann $1 $(($2 - 1)); ackermann $(($1 - 1)) $r; fi
}
ackermann 2 4; echo "ackermann $r"

i=0; while [ $i -lt 20 ]; do (exit $i); [ $? = $i ] || echo "lost an exit status"; i=$((i + 1)); done
yes | head -n 1000 | while read x; do echo $x; done | sort | uniq -c | tr -d ' '
echo a b c | { read x y; echo "$y $x"; }
cat <<EOF | tr a-z A-Z
here $(echo document) ${nothing:-default} $((6 * 7))
EOF

trap 'echo caught USR1' USR1; kill -USR1 $$
trap 'echo caught TERM' TERM; (kill -TERM $$); trap - TERM
sh -c 'kill -KILL $$' 2>/dev/null; echo "killed $?"
sleep 5 & kill $!; wait $!; echo "waited $?"
(trap 'echo inner exit' EXIT; exit 3); echo "inner $?"

(set -e; false; echo not reached); echo "set -e $?"
(unset x; : ${x?is unset}) 2>/dev/null; echo "unset $?"
(eval 'for in') 2>/dev/null; echo "syntax $?"
(readonly c=1; c=2) 2>/dev/null; echo "readonly $?"
no_such_command 2>/dev/null; echo "not found $?"
out() { for a; do case $a in x*) return 4 ;; *) echo "arg $a" ;; esac; done; }
out 1 2 x 3; echo "returned $?"
for a in 1 2 3; do for b in 1 2 3; do [ $b = 2 ] && continue 2; [ $a = 3 ] && break 2; echo "$a$b"; done; done
set -- -a -b val rest; while getopts ab: o; do echo "option $o $OPTARG"; done
v=path/to/file.tar.gz; echo "${v##*/} ${v%.*} ${v%%.*} ${#v}"
d=$(mktemp -d); cd "$d" || exit; for n in b a c; do echo $n > $n.txt; done; echo *.txt; cat < a.txt > d; cat d b.txt; exec 5> e; echo five >&5; exec 5>&-; cat e; cd /; rm -r "$d"
alias hi='echo hello'; eval 'hi there'
umask 022; umask; command -v cd; type fact | head -n 1
exec sh -c 'echo replaced; exit 9'
