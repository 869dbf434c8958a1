package sources

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tasard/tasard/cmd/internal/command"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/collectors/source"
)

// NewDefinitions returns the command tasard definitions.
func NewDefinitions(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "definitions",
		Short: "Print the built-in definitions of sources, and their JSON Schema",
		Long: `definitions prints what an author of definitions starts from. A definition says how a source of rates is fetched and
read; tasard serve --sources DIR uses the files of a directory in addition to the built-in ones.`,
		Example: `  tasard definitions show bhd-site > ./definitions/bhd-site.json
  tasard definitions schema > ./definitions/definition.schema`,
		Subcommands: []*cobra.Command{newShow(p), newSchema(p)},
	}.Command(p)
}

func newShow(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "show ID",
		Short: "Print the built-in definition of a source",
		Long: `show prints the file with the built-in definition of a source, as a start for one of your own. A file with the same id
in the directory of --sources replaces it.`,
		Example: `  tasard definitions show bhd-site > ./definitions/bhd-site.json
  tasard definitions show infodolar | jq '.pages[].requests'`,
		Args: command.ExactArgs(1, "the id of a source"),
		Run: func(_ context.Context, args []string) error {
			d, err := FindDefinition(source.DefaultSet(), args[0])
			if err != nil {
				return err
			}
			return printFile(p, source.DefaultSet().File(d.ID))
		},
	}.Command(p)
}

func newSchema(p *process.Process) *cobra.Command {
	return command.Spec{
		Use:   "schema",
		Short: "Print the JSON Schema of definition files",
		Long: `schema prints a JSON Schema (draft 2020-12) of definition files, with which an editor checks and completes them: name it in
the key $schema of a file, or in the settings of the editor. Its name must not end in .json if it lies in the directory
of --sources. The node checks more, such as selectors and patterns; tasard sources list --sources DIR shows that.`,
		Example: `  tasard definitions schema > ./definitions/definition.schema
  tasard definitions schema | jq '."$defs".page.properties | keys'`,
		Run: func(context.Context, []string) error { return printFile(p, source.Schema()) },
	}.Command(p)
}

func printFile(p *process.Process, text []byte) error {
	if _, err := p.Stdout.Write(text); err != nil {
		return exit.Errorf(exit.IOError, "write the answer: %w", err)
	}
	return nil
}
