// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/engine/compare"
)

const (
	// maxNotKept limits the fields that a message about a write names.
	maxNotKept = 5
	// maxNotKeptValue limits the bytes of a value in that message.
	maxNotKeptValue = 80
)

// verify compares the response to a write with the manifest, which costs no extra request. It
// refuses a manifest with fields that the member's version of the kind lacks, that a webhook
// changed, or that a merge lost. The agent retries it: the kind or the webhook can change without
// an event.
func (e *Engine) verify(it Item, written *unstructured.Unstructured) *refusal.Refusal {
	wanted := it.object
	switch {
	case it.Mode.Method != Merge && it.Mode.Method != ServerSide && it.Mode.Method != Replace:
		return nil
	case it.Mode.Leave != nil:
		wanted = it.Mode.Leave.Lean
	}
	lost := compare.NotKept(e.merger.Known, wanted, written)
	if len(lost) == 0 {
		return nil
	}
	return &refusal.Refusal{Reason: FieldsNotApplied, Message: Shorten(e.notKept(it, lost, written))}
}

// notKept says which fields differ from the manifest, and which client or webhook changed them.
func (e *Engine) notKept(it Item, lost []compare.Detail, written *unstructured.Unstructured) string {
	first := lost[0]
	text := fmt.Sprintf("The member changed the object when it was written: %s is %s instead of %s",
		first.Path, briefly(first.ValueInMember), briefly(first.ValueInHub))
	if first.ValueInMember == "" {
		text = fmt.Sprintf("The member changed the object when it was written: %s is missing; its value in the manifest is %s",
			first.Path, briefly(first.ValueInHub))
	}
	if len(lost) > 1 {
		var paths []string
		for _, field := range lost[1:min(len(lost), maxNotKept)] {
			paths = append(paths, field.Path)
		}
		text += ", and also " + strings.Join(paths, ", ")
		if more := len(lost) - maxNotKept; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text + ". " + e.whoChanged(it, first, written) + ". " + e.Remedies.FieldsNotApplied
}

// whoChanged names the client that changed a field, if the object shows it. A webhook's change of
// our own request is attributed to our field manager.
func (e *Engine) whoChanged(it Item, field compare.Detail, written *unstructured.Unstructured) string {
	manager := holderOf(written.GetManagedFields(), field.Path, e.managerOf(it))
	switch {
	case manager != "":
		return fmt.Sprintf("Field manager %q holds it", manager)
	case field.ValueInMember == "":
		return "The member's version of the kind does not have the field, or a mutating webhook of the member removed it"
	}
	return "A mutating webhook of the member changed it"
}

func briefly(value string) string { return cmp.Or(untrusted.Truncate(value, maxNotKeptValue), `""`) }
