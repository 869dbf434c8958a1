// Command bench measures the whole system under load, beside yardsticks in the same run.
package main
