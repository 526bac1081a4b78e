package opencode

func playProgram() bool { return false }
