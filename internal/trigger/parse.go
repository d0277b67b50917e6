package trigger

// Parse reads a configuration. name is the file's, for errors. The error is an Errors, with all that is wrong.
func Parse(name string, data []byte) (*Config, error) { return nil, nil }
