// Package prompt turns a conversation into what an agent is told. Agents keep their history themselves and take one question at a time, so
// the whole conversation becomes the text of one question.
package prompt
