# SPDX-License-Identifier: BSD-2-Clause
# Completion of `weft` in bash. Commands, options and the tests of `weft bench`
# are read from what the command itself prints, so that there is no list to keep.

_weft_commands()
{
	"$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_weft_options()
{
	"$@" --help 2>/dev/null | grep -o -- '  -[^ ].*' |
		grep -oE -- '(^ *|, )(--[a-z][a-z-]*|-[A-Za-z])' |
		grep -oE -- '--?[A-Za-z].*' | awk '!seen[$0]++'
}

# What the option $1 is followed by, as the help text of a command names it (NAME,
# msg|tagged); nothing if it stands alone.
_weft_argument()
{
	local option=$1
	shift
	"$@" --help 2>/dev/null |
		sed -nE "s/^ +(-[A-Za-z], )?($option|$option, --[a-z-]+) ([^ ]+)( .*)?\$/\3/p" |
		head -n 1
}

_weft_providers()
{
	fi_info -l 2>/dev/null | sed -n 's/^\([^ :]*\):$/\1/p'
}

# Words for the argument of an option; the complaint about a wrong one lists them.
_weft_arguments()
{
	case $2,$3 in
	bench,-p | bench,--provider) _weft_providers ;;
	bench,--over) echo node loopback veth ;;
	bench,-a | bench,--against) _weft_providers; echo socket ucx mpi:vader mpi:btl-tcp mpi:weft ;;
	stat,-s | stat,--sort)
		"$1" stat --sort '?' 2>&1 | sed -n 's/.*--sort is \(.*\), not .*/\1/p' |
			tr -d , | sed 's/ or / /'
		;;
	*) echo "$4" | grep -F '|' | tr '|' ' ' ;;
	esac
}

_weft_tests()
{
	"$1" bench --help 2>/dev/null | sed -n '1,/^$/d;/^$/q;s/^  \([a-z]*\)  .*/\1/p'
	echo wd comp
}

_weft()
{
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=
	local before=${COMP_WORDS[COMP_CWORD - 1]} argument=
	local -a call=("$1" "$command")
	COMPREPLY=()
	# These two have options of their own.
	case $COMP_CWORD,$command,${COMP_WORDS[2]} in
	2,*) ;;
	*,bench,wd | *,bench,comp) call+=("${COMP_WORDS[2]}") ;;
	esac
	if [ "$COMP_CWORD" -gt 2 ] && [[ $before == -* ]]; then
		argument=$(_weft_argument "$before" "${call[@]}")
	fi
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="$(_weft_commands "$1") help --help --version"
	elif [ "$command" = help ]; then
		words=$(_weft_commands "$1")
	elif [ -n "$argument" ]; then
		words=$(_weft_arguments "$1" "$command" "$before" "$argument")
	elif [[ $word == -* ]]; then
		words=$(_weft_options "${call[@]}")
	elif [ "$command" = bench ] && [ ${#call[@]} = 2 ]; then
		words=$(_weft_tests "$1")
	else
		return 0
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _weft weft
