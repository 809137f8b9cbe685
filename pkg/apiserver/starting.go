// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// knownCheck is how often a starting server checks whether it can authenticate callers.
const knownCheck = 100 * time.Millisecond

// onceKnown calls serving as soon as callers can be authenticated.
func onceKnown(ctx context.Context, known func() error, serving func()) {
	err := wait.PollUntilContextCancel(ctx, knownCheck, true, func(context.Context) (bool, error) { return known() == nil, nil })
	if err == nil {
		serving()
	}
}

// refuseUnready keeps the server unready until callers can be authenticated, and refuses everything
// except probes with 503. A 401 would be final: kubectl and client-go do not retry it. The response
// closes the connection, because a client sends its certificate only if the server requests it in
// the handshake.
func refuseUnready(generic *genericserver.Config, codecs runtime.NegotiatedSerializer, known func() error) {
	generic.ReadyzChecks = append(generic.ReadyzChecks, healthz.NamedCheck("callers", func(*http.Request) error { return known() }))
	build := generic.BuildHandlerChainFunc
	generic.BuildHandlerChainFunc = func(routed http.Handler, config *genericserver.Config) http.Handler {
		chain := build(routed, config)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := known()
			if err == nil || slices.Contains(probePaths, r.URL.Path) {
				chain.ServeHTTP(w, r)
				return
			}
			starting := apierrors.NewServiceUnavailable("the gateway is starting: " + err.Error())
			starting.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
			w.Header().Set("Connection", "close")
			responsewriters.ErrorNegotiated(starting, codecs, schema.GroupVersion{}, w, r)
		})
	}
}
