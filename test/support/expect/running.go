// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Running is something that runs until it is stopped, in the process of the suite.
type Running struct {
	cancel context.CancelFunc
	done   chan error
}

// Started makes something, and runs it. The context of both ends with Stop.
func Started(prepare func(context.Context) (run func(context.Context) error, err error)) *Running {
	ginkgo.GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	run, err := prepare(ctx)
	if err != nil {
		cancel()
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	started := &Running{cancel: cancel, done: make(chan error, 1)}
	go func() { started.done <- run(ctx) }()
	return started
}

// Stop ends it, and waits until it has ended well. A second time it does nothing.
func (r *Running) Stop() {
	ginkgo.GinkgoHelper()
	if r.cancel == nil {
		return
	}
	r.cancel()
	r.cancel = nil
	gomega.Eventually(r.done).Should(gomega.Receive(gomega.BeNil()))
}
