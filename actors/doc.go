// Package actors is who may touch what, and when: it runs the engine's state in actors and journals every
// change. System implements engine.Service and engine.Intake.
package actors
