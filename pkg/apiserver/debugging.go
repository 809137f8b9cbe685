// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericserver "k8s.io/apiserver/pkg/server"
)

// DebugServer serves Config.Debug and the probes to callers whom the hub authenticates. A gateway
// that does not serve the proxy has only this server.
type DebugServer struct {
	generic *genericserver.GenericAPIServer
}

// NewDebugServer listens and builds the server. It uses only these fields of Config: the hub,
// Authenticator and Authorizer, the address and certificate, RequestTimeout, and Debug, which is
// required.
func (c Config) NewDebugServer(ctx context.Context) (*DebugServer, error) {
	if c.Debug == nil || c.Certificate == nil {
		return nil, errors.New("a server for debugging needs a handler and a serving certificate")
	}
	c.complete()
	completed := CompletedConfig{config: &c}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	generic := genericserver.NewConfig(codecs)
	known, _, debug, err := completed.callers(ctx, generic)
	if err != nil {
		return nil, err
	}
	completed.plain(generic)
	generic.EnableDiscovery = false
	own := routes{debug: debug} // Without a parser, no request is taken for one to a member.
	generic.BuildHandlerChainFunc = func(routed http.Handler, config *genericserver.Config) http.Handler {
		return genericserver.DefaultBuildHandlerChain(own.intercept(routed), config)
	}
	refuseUnready(generic, codecs, known)
	listener, err := completed.listen(ctx)
	if err != nil {
		return nil, err
	}
	generic.SecureServing = &genericserver.SecureServingInfo{Listener: listener, Cert: c.Certificate}
	built, err := generic.Complete(nil).New("fleetgate-debug", genericserver.NewEmptyDelegate())
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("building the server for debugging: %w", err)
	}
	return &DebugServer{generic: built}, nil
}

// Address is where the server listens.
func (s *DebugServer) Address() net.Addr { return s.generic.SecureServingInfo.Listener.Addr() }

// Run serves until the context ends.
func (s *DebugServer) Run(ctx context.Context) error {
	if err := s.generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving %s: %w", DebugPrefix, err)
	}
	return nil
}
