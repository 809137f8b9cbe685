// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestMatchers(t *testing.T) {
	g := NewWithT(t)
	conditions := []metav1.Condition{{Type: "Applied", Status: metav1.ConditionTrue, Reason: "Done", Message: "all"}}
	g.Expect(conditions).To(HaveCondition("Applied", "True/Done"))
	g.Expect(conditions).NotTo(HaveCondition("Applied", "False/Done"))
	g.Expect(conditions).To(HaveCondition("Available", ""))
	g.Expect(Condition(conditions, "Applied").Message).To(Equal("all"))
	g.Expect(Condition(conditions, "Available")).To(Equal(metav1.Condition{}))

	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "x", field.ErrorList{field.Required(field.NewPath("spec"), "it is missing")})
	g.Expect(error(refused)).To(BeInvalid(HaveExactElements, "spec", "missing"))
	g.Expect(error(refused)).NotTo(BeInvalid(ContainElements, "status", "missing"))
	g.Expect(errors.New("not an answer")).NotTo(BeInvalid(ContainElements))
}

func TestWhatRunsIsStoppedOnce(t *testing.T) {
	RegisterTestingT(t)
	ended := 0
	running := Started(func(context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			<-ctx.Done()
			ended++
			return nil
		}, nil
	})
	running.Stop()
	running.Stop()
	if ended != 1 {
		t.Errorf("it ended %d times", ended)
	}
}
