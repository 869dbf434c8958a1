package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tasard/tasard/actors/yield"
	"github.com/tasard/tasard/cmd/internal/exit"
	"github.com/tasard/tasard/cmd/internal/input"
	"github.com/tasard/tasard/cmd/internal/process"
	"github.com/tasard/tasard/collectors"
	"github.com/tasard/tasard/engine"
	"github.com/tasard/tasard/node"
)

// TakeIn imports a file into the running node. Lines that are not published are logged; a stop in the middle is no error,
// nor is a file that can't be read, or is none of observations, unless the node has nothing else to answer from.
func TakeIn(ctx context.Context, p *process.Process, n *node.Node, file *input.File, log *slog.Logger) error {
	var network yield.Network
	defer network.Close()
	intake := &intake{
		to: n.System(), clock: p.Clock, report: &logReport{log: log, clock: p.Clock, last: p.Clock()}, sources: n.Catalogue(),
		pause: network.Yield,
	}
	err := intake.take(ctx, file, collectors.AnyFormat)
	if err == nil || intake.tally.lines > 0 {
		log.Info(fmt.Sprintf("imported %s: %s", file.Name, &intake.tally))
	}
	if stopped := node.Stopped(n.System()); stopped != nil {
		return stopped
	}
	switch code := exit.Code(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil || readOnly(err):
		log.Warn(err.Error())
		return nil
	case (code == exit.NoInput || code == exit.Broken) && (n.System().Recovery().Last > 0 || intake.tally.lines > 0):
		log.Error("import: " + err.Error() + "; the node goes on with the data that it has")
		return nil
	}
	return err
}

// readOnly tells an error that passes: the disk is full, and reads go on.
func readOnly(err error) bool {
	var answer *engine.Error
	return errors.As(err, &answer) && answer.Code == engine.CodeReadOnly
}
