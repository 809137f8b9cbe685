// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prose checks the words that people read: documents, charts, messages, comments and test
// names. Its word list names expressions that readers cannot grep for or have to read twice, and the
// standard term for each.
package prose

import "regexp"

// term is an expression that is not used, and what to write.
type term struct {
	pattern *regexp.Regexp
	instead string
}

// upstream has the expressions that a file quotes from Kubernetes. API servers send them in messages,
// and the code recognizes messages by them, so they stay as they are.
var upstream = map[string]*regexp.Regexp{
	"pkg/inspect/explain/remedies.go":  immutable,
	"pkg/work/engine/recreate.go":      immutable,
	"pkg/work/engine/recreate_test.go": immutable,
}

// immutable is what API servers say of a field that cannot be changed.
var immutable = regexp.MustCompile(`\bpod updates may not\b|\bmay not (?:be )?(?:changed?|updated|modified|added|removed)\b`)

// terms is the word list of the project.
var terms = compile()

func compile() []term {
	list := []struct{ pattern, instead string }{
		{`\b(?:is|are|was|were|be|gone) away\b|\baway with\b`, "unreachable, disconnected"},
		{`\bsilent(?:ly)? (?:member|agent|cluster)|\bnot heard of\b|\bheard (?:of )?last\b`, "unreachable, no heartbeat since"},
		{`\b(?:comes?|came) back\b`, "reconnects, recovers"},
		{`\bfound again\b`, "recovers, reused"},
		{`\bheld back\b`, "retained, delayed"},
		{`\blets? go of\b|\blet go\b|\btaken? back\b`, "release, readmit"},
		{`\b(?:put|puts|putting) right\b|\bmend(?:s|ed|ing)?\b|\brepair(?:s|ed|ing)?\b`, "revert, correct, fix"},
		{`\bnot well\b|\bis well\b|\bare well\b|\bas it should be\b|\bas they should be\b`, "healthy, ready, up to date"},
		{`(?i)\bwhat is wrong\b`, "problems"},
		{`(?i)\bwhat is where\b`, "placed resources"},
		{`(?i)\blook across\b`, "search members"},
		{`(?i)\bwhy not\b`, "reason"},
		{`(?i)\b(?:that are|is|are) loose\b|\bleaves open\b`, "permissive settings, risk"},
		{`(?i)\bnobody (?:was|is) asked\b`, "author check skipped"},
		{`\bmay not\b`, "forbidden, must not, cannot"},
		{`\basks? again\b|\bcomes? again\b`, "retries, requeues"},
		{`\bgo(?:es|ing)? on\b|\bwent on\b`, "continues, resumes"},
		{`\brequests that last\b`, "long-running requests"},
		{`\b(?:is|are) led\b|\bthe one that leads\b`, "leader, leader-elected controllers"},
		{`\ba no\b|\bwithout a word\b`, "reason, rejection, warning"},
		{`\b(?:gift|wish(?:es)?|jury|vigil|brake|pulse|roster|tally)\b`, "the term of Kubernetes"},
		{`\btimes as long as bare\b`, "N x the baseline client"},
		{`\bunder way\b`, "in flight, in progress"},
		{`\bof before\b|\bthe (?:version|one) before\b`, "previous, previous version"},
		{`\banew\b|\bonce more\b`, "again, re-create"},
		{`\btold (?:as|of|by|that)\b|\b(?:is|are) told\b`, "reported, reported as"},
		{`\bknock(?:s|ed|ing)?\b`, "connect, register"},
		{`\bwhoever\b`, "the user who, the caller that"},
		{`\bbecomes? of\b|\bbecame of\b`, "the result, the status"},
		{`\bto the letter\b`, "exactly as the upstream API specifies"},
		{`\baims?\b|\baimed\b`, "target"},
		{`\bwent back\b|\bgoes back\b`, "restored, rolled back"},
		{`\bsecond life\b`, "disaster recovery"},
		{`\bbreaking the glass\b`, "break-glass access"},
		{`\bfor ever\b|\bforever\b`, "indefinitely"},
		{`\bstands? over\b|\bas those of\b|\bthat which\b`, "rewrite the sentence"},
		{`^Empty:`, "If unset,"},
		{`\bTo do:`, "an imperative sentence"},
	}
	compiled := make([]term, 0, len(list))
	for _, entry := range list {
		compiled = append(compiled, term{regexp.MustCompile(entry.pattern), entry.instead})
	}
	return compiled
}
