# SPDX-License-Identifier: BSD-2-Clause
# Completion of `weft` in bash. Commands, options and the tests of `weft bench`
# are read from the help texts, so that there is no list to keep.

_weft_commands()
{
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_weft_options()
{
	"$1" "$2" --help 2>/dev/null | grep -o -- '  -[^ ].*' |
		grep -oE -- '(^ *|, )(--[a-z][a-z-]*|-[A-Za-z])' |
		grep -oE -- '--?[A-Za-z].*'
}

_weft_tests()
{
	"$1" bench --help 2>/dev/null | sed -n '1,/^$/d;/^$/q;s/^  \([a-z]*\)  .*/\1/p'
	echo wd comp
}

_weft()
{
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="$(_weft_commands "$1") help --help --version"
	elif [ "$command" = help ]; then
		words=$(_weft_commands "$1")
	elif [[ $word == -* ]]; then
		words=$(_weft_options "$1" "$command")
	elif [ "$command" = bench ]; then
		words=$(_weft_tests "$1")
	else
		return 0
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _weft weft
