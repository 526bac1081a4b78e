package chat_test

import (
	"testing"

	"hydrallm/services/dispatcher/internal/answer/answertest"
)

func FuzzStream(f *testing.F) {
	answertest.FuzzStream(f, answertest.Options{IncludeUsage: true, Model: "auto"})
}
