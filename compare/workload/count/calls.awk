# Puts the instructions in the variable "code" at each function's entry, in a compiler's assembly.
$1 == ".type" { sub(/,$/, "", $2); entry[$2] = $3 ~ /function/ && $2 !~ /\.cold/ }
{ print }
/^[^ \t#@]+:$/ {
	name = substr($1, 1, length($1) - 1)
	if (entry[name]) print code
	entry[name] = 0
}
