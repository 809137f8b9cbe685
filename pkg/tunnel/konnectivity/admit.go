// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// admit returns an agent's identity and the member that it serves. Its errors are gRPC's.
func (a *AgentServer) admit(ctx context.Context) (Identity, string, agentInfo, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	id, err := identifyPeer(ctx, a.options.Credentials, md.Get(headerAuthorization))
	if err != nil {
		return id, "", agentInfo{}, err
	}
	agent, err := parseAgentInfo(md)
	if err != nil {
		return id, "", agent, status.Error(codes.InvalidArgument, err.Error())
	}
	members, err := a.options.MembersOf(ctx, id.Name)
	if err != nil {
		return id, "", agent, status.Error(codes.Unavailable, "the gateway cannot tell whose agent this is: "+err.Error())
	}
	member, err := memberOf(id.Name, members, agent.hosts)
	if err != nil {
		return id, "", agent, status.Error(codes.PermissionDenied, err.Error())
	}
	return id, member, agent, nil
}

// memberOf is the member that an agent serves: one of those that its identity may serve. The
// agent's own identifiers can only choose among those, or show that it is the wrong agent.
func memberOf(user string, members, hosts []string) (string, error) {
	if len(members) == 0 {
		return "", fmt.Errorf("%q is the agent of no member: compare with spec.identity of its MemberCluster", user)
	}
	for _, host := range hosts {
		if slices.Contains(members, host) {
			return host, nil
		}
	}
	if len(hosts) > 0 {
		return "", fmt.Errorf("%q is not the agent of %q: its agentIdentifiers name another member than its credential", user, printable(hosts[0]))
	}
	if len(members) > 1 {
		return "", fmt.Errorf("%q is the agent of %d members: say which one with --agent-identifiers=host=<member>", user, len(members))
	}
	return members[0], nil
}

// identifyPeer returns the identity of the peer of a gRPC stream. Its errors are gRPC's.
func identifyPeer(ctx context.Context, c Credentials, authorization []string) (Identity, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, status.Error(codes.Unauthenticated, "no peer")
	}
	info, ok := p.AuthInfo.(grpccredentials.TLSInfo)
	if !ok {
		return Identity{}, status.Error(codes.Unauthenticated, "no TLS")
	}
	id, ok, err := c.identify(ctx, info.State, authorization)
	if err != nil {
		return id, status.Error(codes.Unavailable, "the gateway cannot tell who this is: "+err.Error())
	}
	if !ok {
		return id, status.Error(codes.Unauthenticated, "no credential that is good at this listener")
	}
	return id, nil
}

func peerAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}
