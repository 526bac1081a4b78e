package httpapi

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// headerSession names the session of a request that does not name it in its body, and of every answer of a session.
const headerSession = "X-Session-Id"

// maxSession is the longest id of a session.
const maxSession = 128

// saneSession says whether a text may name a session: it stands in headers and paths.
func saneSession(id string) bool {
	if id == "" || len(id) > maxSession {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case (c == '-' || c == '_' || c == '.' || c == ':') && i > 0:
		default:
			return false
		}
	}
	return true
}

// session takes the session of a chat request from its body or header, and tells it to the client, whatever the answer is.
func (x *exchange) session(req *contract.Request) *fault.Fault {
	if req.Operation != contract.Chat {
		return nil
	}
	if given := string(x.Request.Header.Peek(headerSession)); given != "" {
		if req.SessionID != "" && req.SessionID != given {
			return badSession("'session_id' and the header " + headerSession + " name different sessions")
		}
		req.SessionID = given
	}
	switch {
	case req.SessionID == "" && req.ForkFrom == "":
		return nil
	case req.SessionID == "":
		return &fault.Fault{Kind: fault.Invalid, Param: "session_id", Code: openai.CodeMissing, Message: "'fork_from' wants the session that it is in: 'session_id' is missing"}
	case !saneSession(req.SessionID):
		return badSession("The id of a session has at most 128 characters: letters, digits, and, but not at its begin, - _ . :")
	}
	x.Response.Header.Set(headerSession, req.SessionID)
	return nil
}

func badSession(message string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Param: "session_id", Code: openai.CodeInvalidValue, Message: message}
}
