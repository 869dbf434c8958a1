// Package workbook is under way.
package workbook
