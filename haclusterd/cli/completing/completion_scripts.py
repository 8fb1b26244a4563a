"""Completion for bash, zsh and fish: each script asks `crm --complete`, which reads the command table.

What `crm` offers is one word a line; with `--complete-with-help` a tab and what the word means follow. A shell of which
nothing is wanted offers files.
"""

from collections.abc import Mapping

BASH = r"""# bash completion of crm
_crm() {
    local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} word last cut="" breaks=""
    local -a words=()
    # bash splits at = and : too; crm gets words as they were typed.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -gt 0 && $line != [[:space:]]* ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        line=${line#"${line%%[![:space:]]*}"}
        line=${line#"$word"}
    done
    last=${words[${#words[@]}-1]}
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=":"
    [[ -n $breaks ]] && cut=${last%"${last##*[$breaks]}"}
    IFS=$'\n'
    COMPREPLY=( $(crm --complete "${words[@]:1}" 2>/dev/null) )
    COMPREPLY=( "${COMPREPLY[@]#"$cut"}" )
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        compopt -o default
    elif [[ ${COMPREPLY[0]} == *[=.] && ${COMPREPLY[0]} != .. ]]; then
        compopt -o nospace
    fi
}
complete -F _crm crm
"""

ZSH = r"""#compdef crm
# zsh completion of crm
_crm() {
    local line word help
    local -a found shown open open_shown
    for line in "${(@f)$(crm --complete-with-help "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        word=${line%%$'\t'*}
        help=${line#"$word"}
        help=${help#$'\t'}
        [[ -n $word ]] || continue
        if [[ $word == *[=.] && $word != .. ]]; then
            open+=("$word")
            open_shown+=("$word${help:+  -- $help}")
        else
            found+=("$word")
            shown+=("$word${help:+  -- $help}")
        fi
    done
    if (( $#found + $#open == 0 )); then
        _files
        return
    fi
    if (( $#found )); then
        compadd -l -d shown -a found
    fi
    if (( $#open )); then
        compadd -l -S '' -d open_shown -a open
    fi
}
if [[ $funcstack[1] == _crm ]]; then
    _crm "$@"
else
    compdef _crm crm
fi
"""

FISH = r"""# fish completion of crm
function __crm_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (crm --complete-with-help $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c crm -f -a '(__crm_complete)'
"""

SCRIPTS: Mapping[str, str] = {"bash": BASH, "fish": FISH, "zsh": ZSH}
"""By the shell."""
