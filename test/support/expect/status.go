// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"errors"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gcustom"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusOf is what an API server answered instead of doing it; never without details.
func StatusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.Status{Details: &metav1.StatusDetails{}}
	}
	return status.Status()
}

// BeInvalid matches 422 with a cause for each of the fields, whose messages contain the texts:
// field, text, field, text. elements says how: HaveExactElements these and in order,
// ContainElements these among others.
func BeInvalid(elements func(...any) gomegatypes.GomegaMatcher, fieldsAndTexts ...string) gomegatypes.GomegaMatcher {
	var causes []any
	for i := 0; i < len(fieldsAndTexts); i += 2 {
		causes = append(causes, gomega.And(gomega.HaveField("Field", fieldsAndTexts[i]), gomega.HaveField("Message", gomega.ContainSubstring(fieldsAndTexts[i+1]))))
	}
	return gomega.And(
		gomega.Satisfy(apierrors.IsInvalid),
		gomega.WithTransform(func(err error) int32 { return StatusOf(err).Code }, gomega.BeEquivalentTo(422)),
		gomega.WithTransform(func(err error) []metav1.StatusCause { return StatusOf(err).Details.Causes }, elements(causes...)),
	)
}

// Condition is the condition of a type, and empty if there is none.
func Condition(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := apimeta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// Said is what a condition says, as "status/reason"; empty if there is none.
func Said(conditions []metav1.Condition, kind string) string {
	if found := apimeta.FindStatusCondition(conditions, kind); found != nil {
		return string(found.Status) + "/" + found.Reason
	}
	return ""
}

// HaveCondition matches conditions that say something about a type, as "status/reason".
func HaveCondition(kind, said string) gomegatypes.GomegaMatcher {
	return gcustom.MakeMatcher(func(conditions []metav1.Condition) (bool, error) {
		return Said(conditions, kind) == said, nil
	}).WithTemplate("Expected\n{{.FormattedActual}}\n{{.To}} have condition {{index .Data 0}} {{index .Data 1}}", []string{kind, said})
}
