// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

func TestWithoutBodiesIsDeafToBodiesOnly(t *testing.T) {
	var written []string
	logger := funcr.New(func(prefix, args string) { written = append(written, prefix+" "+args) }, funcr.Options{Verbosity: 10})
	ctx := WithoutBodies(klog.NewContext(t.Context(), logger.WithName("controller")))

	for _, logger := range []klog.Logger{
		klog.FromContext(ctx),
		klog.FromContext(ctx).WithName("n").WithValues("k", "v"),
		klog.FromContext(ctx).WithCallDepth(2),
		klog.FromContext(WithoutBodies(ctx)),
	} {
		written = nil
		logger.Info("Request")
		logger.V(7).Info("Address")
		logger.V(8).Info("Body")
		logger.V(4).V(6).Info("Body")
		all := strings.Join(written, "\n")
		if len(written) != 2 || strings.Contains(all, "Body") || !strings.Contains(all, "controller") {
			t.Errorf("wrote:\n%s", all)
		}
	}
	if klog.FromContext(WithoutBodies(t.Context())).V(bodyLevel).Enabled() {
		t.Error("the logger of last resort shows bodies")
	}
}
