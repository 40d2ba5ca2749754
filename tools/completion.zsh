#compdef weft
# SPDX-License-Identifier: BSD-2-Clause
# Completion of `weft` in zsh. Commands, options and the tests of `weft bench`
# are read from what the command itself prints, so that there is no list to keep.

# "name:what it does", from lines of help that begin with two blanks.
_weft_described()
{
	sed -nE "$1"'s/^  ([a-z][a-z-]*)  +([^ ].*)$/\1:\2/p'
}

_weft_commands()
{
	local -a commands
	commands=("${(@f)$("$program" --help 2>/dev/null |
		_weft_described '/^Commands:/,/^$/')}" 'help:show the help of a command')
	_describe -t commands 'command of weft' commands
}

# Lines of "  -s, --long ARG  text" as _arguments wants them: "--long[text]:ARG:".
_weft_options()
{
	local line name text argument
	local -A seen
	"$program" "$@" --help 2>/dev/null | while IFS= read -r line; do
		[[ $line =~ '^ {2,6}(-[A-Za-z0-9]+)?(, )?(--[a-z][a-z-]*)?( [^ ]+)?( +(.*))?$' ]] ||
			continue
		name=${${match[4]# }%,} argument=
		text=${match[6]//(#m)[\]\[:\\]/\\$MATCH}
		case $match[3],$name in
		--provider,*|--against,*) argument=":$name:_weft_providers" ;;
		--over,*) argument=":$name:(node loopback veth)" ;;
		*,*'|'*) argument=":${name//|/ or }:(${name//|/ })" ;;
		*,FILE|*,PATH) argument=":$name:_files" ;;
		*,[A-Z]*) argument=":${name//:/ }: " ;;
		esac
		for name in $match[1] $match[3]; do
			(( $+seen[$name] )) && continue
			seen[$name]=1
			print -r -- "${name}[$text]$argument"
		done
	done
}

_weft_providers()
{
	local -a names
	names=(${(f)"$(fi_info -l 2>/dev/null | sed -n 's/^\([^ :]*\):$/\1/p')"})
	compadd -S '' -- $names socket ucx mpi:vader mpi:btl-tcp mpi:weft
}

_weft_tests()
{
	local -a tests
	tests=("${(@f)$("$program" bench --help 2>/dev/null |
		_weft_described '1,/^$/d;/^$/q;')}" 'wd:channels to accelerators'
		'comp:compression')
	_describe -t tests 'test' tests
}

_weft()
{
	setopt localoptions extendedglob
	local program=$words[1] command=$words[2] rest
	local -a options call=($words[2])
	program=${~program}
	if (( CURRENT == 2 )); then
		if [[ $PREFIX == -* ]]; then
			compadd -- --help --version
		else
			_weft_commands
		fi
		return
	fi
	case $command in
	help)
		_weft_commands
		return
		;;
	bench)
		rest='*:test:_weft_tests'
		# These two have options of their own.
		if (( CURRENT > 3 )) && [[ $words[3] == (wd|comp) ]]; then
			call+=($words[3])
			rest='*: :'
			shift words
			(( CURRENT-- ))
		fi
		;;
	gzip|gunzip) rest='*:file:_files' ;;
	efa) rest='*::command:_normal' ;;
	*) rest='*: :' ;;
	esac
	options=("${(@f)$(_weft_options $call)}")
	shift words
	(( CURRENT-- ))
	_arguments -S : $options $rest
}

_weft "$@"
