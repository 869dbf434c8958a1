package cmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (p *commands) newCompletion() (cmd *cobra.Command) {
	cmd = command.Spec{
		Use:   "completion SHELL",
		Short: "Print a shell completion script",
		Long: `completion prints a script for bash, zsh, fish or powershell that completes commands, flags and their values:
currencies, institutions, sources, files. The script calls the program, so a newer program needs no new script.

bash needs the package bash-completion. Install the script in the directory of the shell:

  bash   tasard completion bash > /etc/bash_completion.d/tasard
  zsh    tasard completion zsh > "${fpath[1]}/_tasard"
  fish   tasard completion fish > ~/.config/fish/completions/tasard.fish`,
		Example: `  source <(tasard completion bash)
  tasard completion fish | source`,
		Args: checkShellArgument,
		Run: func(_ context.Context, args []string) error {
			return writeCompletionScript(cmd.Root(), args[0], p.Stdout)
		},
	}.Command(p.Process)
	cmd.ValidArgs = shells()
	return cmd
}

func checkShellArgument(_ *cobra.Command, args []string) error {
	if len(args) == 1 && slices.Contains(shells(), args[0]) {
		return nil
	}
	found := "nothing"
	if len(args) > 0 {
		found = fmt.Sprintf("%q", strings.Join(args, " "))
	}
	return exit.Errorf(exit.Usage, "want one of %s, found %s", strings.Join(shells(), ", "), found)
}

// writeCompletionScript writes cobra's completion script. The script runs this program with a hidden command of cobra
// (isCompletionRequest).
func writeCompletionScript(root *cobra.Command, shell string, out io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	}
	return root.GenPowerShellCompletionWithDesc(out)
}

// isCompletionRequest reports whether a completion script has started this process. Cobra handles such requests.
func isCompletionRequest(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// registerCompletions registers completion functions for cmd and its subcommands. Arguments are completed according to
// the words in the usage line (cmd.Use), and values of flags according to the names that the help gives to the values.
func registerCompletions(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = completeArguments(cmd)
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		// This cannot fail: the flag exists, and has no other completion function.
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, completeValue(flag))
	})
	for _, child := range cmd.Commands() {
		registerCompletions(child)
	}
}

// completeArguments completes each argument according to the word in capitals at its place in the usage line (cmd.Use),
// such as FILE. If the usage line contains "...", its final word applies to all further arguments.
func completeArguments(cmd *cobra.Command) cobra.CompletionFunc {
	var kinds []string
	repeated := strings.Contains(cmd.Use, "...")
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(word, "--") {
			kinds = append(kinds, "") // the next word is its value
			continue
		}
		if len(kinds) > 0 && kinds[len(kinds)-1] == "" {
			kinds = kinds[:len(kinds)-1]
			continue
		}
		kinds = append(kinds, strings.Trim(word, "[]."))
	}
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		index := len(args)
		if repeated {
			index = min(index, len(kinds)-1)
		}
		if index >= len(kinds) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completionsOfKind(kinds[index])
	}
}

// completeValue completes the value of a flag according to the name of the value in the help, such as FILE. This name
// says more than the type of the value.
func completeValue(flag *pflag.Flag) cobra.CompletionFunc {
	kind, _ := pflag.UnquoteUsage(flag)
	if strings.Contains(flag.Value.Type(), "|") {
		kind = flag.Value.Type()
	}
	switch flag.Name {
	case "currency", "institution", "source":
		kind = strings.ToUpper(flag.Name)
	}
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completionsOfKind(kind)
	}
}

// completionsOfKind returns the known values of a kind of argument, such as the codes of all currencies for CURRENCY.
// It knows only values that are built into the program: it reads no files and calls no node.
func completionsOfKind(kind string) (completions []cobra.Completion, directive cobra.ShellCompDirective) {
	catalogue := engine.DefaultCatalogue()
	directive = cobra.ShellCompDirectiveNoFileComp
	switch kind {
	case "FILE", "PATH":
		directive = cobra.ShellCompDirectiveDefault
	case "DIR", "NEWDIR":
		directive = cobra.ShellCompDirectiveFilterDirs
	case "CURRENCY", "CODE":
		for _, currency := range catalogue.Currencies() {
			completions = append(completions, cobra.CompletionWithDesc(currency.Code, currency.Name))
		}
	case "INSTITUTION":
		for _, institution := range catalogue.Institutions() {
			completions = append(completions, cobra.CompletionWithDesc(institution.ID, institution.Name))
		}
	case "ID", "SOURCE":
		for _, d := range source.DefaultSet().Definitions() {
			completions = append(completions, cobra.CompletionWithDesc(d.ID, d.Name))
		}
	default:
		if strings.Contains(kind, "|") {
			completions = strings.Split(kind, "|")
		}
	}
	return completions, directive
}
