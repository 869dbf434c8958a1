package engine

// SecretOf hides a text that was not made here, such as the password of a mail server.
func SecretOf(text string) Secret { return Secret{text} }
