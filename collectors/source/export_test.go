package source

// MustRead is how the program reads what it carries.
var MustRead = mustRead
