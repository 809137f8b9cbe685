// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const (
	maxCauses  = 8
	maxMessage = 1024 // bytes of one condition's message that come from a member
)

// unmergeable is the error of a manifest that no patch can be made of, such as
// one with a text where its kind has a list.
type unmergeable struct{ err error }

func (e unmergeable) Error() string {
	return "The manifest cannot be merged with the object: " + e.err.Error()
}

func (e unmergeable) Unwrap() error { return e.err }

// isTemporary tells errors that say nothing about the manifest (the member was
// not reached, was too busy to answer, or did not know the agent) from answers.
func isTemporary(err error) bool {
	if errors.As(err, &unmergeable{}) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsUnauthorized(err)
}

// isFieldConflict tells the refusal of a server-side apply from a
// resourceVersion that was overtaken: both are conflicts.
func isFieldConflict(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// Explain says what a member answered, with the exact fields if it named them.
// The answers for a Secret can repeat its values; of those only the fields and
// the kinds of errors are told.
func (d *Dialect) Explain(err error, kind schema.GroupKind) string {
	secret := manifest.IsSecret(kind)
	if errors.As(err, &unmergeable{}) && secret {
		return "The manifest cannot be merged with the object"
	}
	if errors.As(err, &unmergeable{}) {
		return Shorten(err.Error())
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return Shorten("The member was not reached: " + err.Error())
	}
	status := answer.Status()
	if rule := missingRule(status.Message); apierrors.IsForbidden(err) && rule != "" {
		return Shorten(rule)
	}
	causes := describeCauses(status.Details, secret)
	if isFieldConflict(err) {
		return Shorten("Other field managers hold fields of the manifest: " + causes + ". " + d.Remedies.FieldsHeld)
	}
	if causes != "" {
		return Shorten(fmt.Sprintf("The member refused the object (%s): %s", status.Reason, causes))
	}
	if secret {
		return fmt.Sprintf("The member refused the object (%s)", status.Reason)
	}
	return Shorten(fmt.Sprintf("The member refused the object (%s): %s", status.Reason, status.Message))
}

func describeCauses(details *metav1.StatusDetails, secret bool) string {
	if details == nil {
		return ""
	}
	var texts []string
	for _, cause := range details.Causes {
		if cause.Field == "" {
			continue
		}
		text := cause.Message
		if secret {
			text = string(cause.Type)
		}
		texts = append(texts, cause.Field+": "+text)
	}
	if more := len(texts) - maxCauses; more > 0 {
		texts = append(texts[:maxCauses], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Shorten cuts a message for people to what a condition holds, from the middle: the field is at the start of such a text, what
// is wrong with it at the end.
func Shorten(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxMessage {
		return text
	}
	half := maxMessage/2 - 3
	return strings.ToValidUTF8(text[:half]+" ... "+text[len(text)-half:], "")
}
