package control

// weak is false: amd64 keeps stores in order, and loads (C8).
const weak = false

func barrier() {}
