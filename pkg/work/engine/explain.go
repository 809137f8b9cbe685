// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const (
	maxCauses  = 8
	maxMessage = 1024 // bytes of one condition's message that come from a member
)

// unmergeable is the error of a manifest for which no patch can be computed, such as one with a
// string where the kind has a list.
type unmergeable struct{ err error }

func (e unmergeable) Error() string {
	return "The manifest cannot be merged with the object: " + e.err.Error()
}

func (e unmergeable) Unwrap() error { return e.err }

// isTemporary recognizes errors that say nothing about the manifest: the member was unreachable or
// overloaded, or did not authenticate the agent.
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

// isFieldConflict distinguishes a conflict of field managers from a conflict of resource versions.
func isFieldConflict(err error) bool {
	return apierrors.IsConflict(err) && apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// Explain describes an error of the member, with the fields if it names them. Errors for a Secret
// can repeat its values; the description contains only their fields and types.
func (d *Dialect) Explain(err error, kind schema.GroupKind) string {
	secret := manifest.IsSecret(kind)
	if errors.As(err, &unmergeable{}) && secret {
		return "The manifest cannot be merged with the object"
	}
	if errors.As(err, &unmergeable{}) {
		return Shorten(err.Error())
	}
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return Shorten("The member was not reached: " + err.Error())
	}
	status := response.Status()
	if rule := missingRule(status.Message); apierrors.IsForbidden(err) && rule != "" {
		return Shorten(rule)
	}
	refused := "The member refused the object"
	if status.Reason != "" {
		refused += fmt.Sprintf(" (%s)", status.Reason)
	}
	causes := describeCauses(status.Details, secret)
	if isFieldConflict(err) {
		return Shorten("Other field managers hold fields of the manifest: " + causes + ". " + d.Remedies.FieldConflict)
	}
	if causes != "" {
		return Shorten(refused + ": " + causes)
	}
	if secret {
		return refused
	}
	if isDuplicate(err) {
		return Shorten(refused + ": " + status.Message + ". " + d.Remedies.DuplicateKeys)
	}
	return Shorten(refused + ": " + status.Message)
}

// explain describes an error of the member for a manifest.
func (e *Engine) explain(err error, it Item) string {
	if misfit := e.misfit(err, it); misfit != nil {
		return Shorten(fmt.Sprintf("The member refused the object: the manifest does not fit %s of %s: %s", it.Ref.Kind, it.object.GetAPIVersion(), misfit))
	}
	return e.Explain(err, it.Ref.GroupKind())
}

// misfit returns the field of a manifest that does not fit the Go type of its kind. API servers refuse a patch with
// such a field with an error that repeats the patch and does not name the field.
func (e *Engine) misfit(err error, it Item) error {
	refusesPatch := slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool { return cause.Field == "patch" })
	if !refusesPatch || it.object == nil || manifest.IsSecret(it.Ref.GroupKind()) {
		return nil
	}
	if object, failure := e.merger.Known.New(it.object.GroupVersionKind()); failure == nil {
		return untrusted.UnmarshalJSON(it.text, untrusted.Object, object)
	}
	return nil // A custom resource has no Go type.
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

// Shorten shortens a message to what a condition takes.
func Shorten(text string) string { return untrusted.TruncateMiddle(text, maxMessage) }
